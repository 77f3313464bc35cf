package hudi_assets;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.execution.python.UserDefinedPythonFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.PrunedScan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Rows that a Python function reads, of which Spark's optimizer asks for some columns alone: mapInArrow gives all of
 * its columns, always. Spark's own compiler of generated code (Janino, without generics) compiles this in the driver;
 * executors run the Python function and Spark's classes alone.
 */
public class TaskRelation extends BaseRelation implements PrunedScan {
  private final Dataset numbers; // of the tasks: column id, one partition each
  private final UserDefinedPythonFunction function; // from id and the asked columns' names to rows
  private final long bytes;

  public TaskRelation(Dataset numbers, UserDefinedPythonFunction function, String bytes) {
    this.numbers = numbers;
    this.function = function;
    this.bytes = Long.parseLong(bytes);
  }

  public SQLContext sqlContext() {
    return numbers.sqlContext();
  }

  public StructType schema() {
    return (StructType) function.dataType();
  }

  /** By it Spark chooses which side of a join to broadcast. */
  public long sizeInBytes() {
    return bytes;
  }

  /** False: the rows are Spark's internal ones already. */
  public boolean needConversion() {
    return false;
  }

  public RDD buildScan(String[] names) {
    StructField[] fields = new StructField[names.length];
    for (int i = 0; i < names.length; i++) {
      fields[i] = schema().apply(names[i]);
    }
    Dataset asked = (Dataset) numbers.withColumn("columns", functions.lit(String.join(",", names)));
    Column[] arguments = new Column[] {asked.col("id"), asked.col("columns")};
    Column call =
        returning(new StructType(fields)).apply(scala.collection.immutable.ArraySeq$.MODULE$.unsafeWrapArray(arguments));
    return ((Dataset) asked.mapInArrow(call, false, null)).queryExecution().toRdd();
  }

  /** The function's copy with another result type (the third of its values, however many a release of Spark has). */
  private UserDefinedPythonFunction returning(StructType type) {
    Method[] methods = UserDefinedPythonFunction.class.getMethods();
    try {
      for (int m = 0; m < methods.length; m++) {
        if (methods[m].getName().equals("copy")) {
          Object[] values = new Object[methods[m].getParameterCount()];
          for (int i = 0; i < values.length; i++) {
            Method old = UserDefinedPythonFunction.class.getMethod("copy$default$" + (i + 1), new Class[0]);
            values[i] = i == 2 ? type : old.invoke(function, new Object[0]);
          }
          return (UserDefinedPythonFunction) methods[m].invoke(function, values);
        }
      }
    } catch (NoSuchMethodException e) {
      throw new IllegalStateException(e);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    } catch (InvocationTargetException e) {
      throw new IllegalStateException(e);
    }
    throw new IllegalStateException("UserDefinedPythonFunction has no method copy");
  }
}
