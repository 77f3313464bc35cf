package hudi_assets;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.python.UserDefinedPythonFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.PrunedFilteredScan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterable;
import scala.collection.JavaConverters;

/**
 * Rows that a Python function reads, of which Spark's optimizer asks for some columns alone, and may say that some
 * partitions do not matter: mapInArrow gives all of its columns and rows, always. Spark's own compiler of generated
 * code (Janino, without generics) compiles this in the driver; executors run the Python function and Spark's classes
 * alone. What releases of Spark (3.5, 4) name or place differently is looked up when it is called.
 */
public class TaskRelation extends BaseRelation implements PrunedFilteredScan {
  private final SQLContext context;
  private final UserDefinedPythonFunction function; // from slices' numbers and the asked columns' names to rows
  private final Slices slices;

  public TaskRelation(SQLContext context, UserDefinedPythonFunction function, Slices slices) {
    this.context = context;
    this.function = function;
    this.slices = slices;
  }

  public SQLContext sqlContext() {
    return context;
  }

  public StructType schema() {
    return (StructType) function.dataType();
  }

  /** By it Spark chooses which side of a join to broadcast. */
  public long sizeInBytes() {
    return slices.bytes();
  }

  /** False: the rows are Spark's internal ones already. */
  public boolean needConversion() {
    return false;
  }

  /** Spark applies all filters to the rows once more: here they leave out slices. */
  public RDD buildScan(String[] names, Filter[] filters) {
    StructField[] fields = new StructField[Math.max(1, names.length)];
    // A count asks for no column, and Spark 3.5 loses rows that have none: they have one of nulls then.
    fields[0] = new StructField("none", DataTypes.BooleanType, true, Metadata.empty());
    for (int i = 0; i < names.length; i++) {
      fields[i] = schema().apply(names[i]);
    }
    Dataset asked = asked(slices.tasks(filters, context.sparkContext().defaultParallelism()), String.join(",", names));
    Column[] arguments = new Column[] {asked.col("slices"), asked.col("columns")};
    Iterable listed = (Iterable) JavaConverters.asScalaBufferConverter(Arrays.asList(arguments)).asScala();
    Object rows = mapInArrow(asked, returning(new StructType(fields)).apply(listed.toSeq()));
    return ((QueryExecution) ask(rows, "queryExecution")).toRdd();
  }

  /** A row of its own partition for each task. */
  private Dataset asked(String[] tasks, String columns) {
    Dataset numbers = (Dataset) context.range(0, tasks.length, 1, Math.max(1, tasks.length));
    Column place = numbers.col("id").plus(functions.lit(Integer.valueOf(1))).cast("int");
    Column slices = functions.element_at(functions.lit(tasks), place).as("slices");
    return (Dataset) numbers.select(new Column[] {slices, functions.lit(columns).as("columns")});
  }

  /** Spark 4's takes the call as a column, 3.5's (pythonMapInArrow) as that column's expression. */
  private static Object mapInArrow(Dataset rows, Column call) {
    Method method = method(rows.getClass(), "mapInArrow", "pythonMapInArrow");
    Object[] values = new Object[method.getParameterCount()]; // the third, a resource profile, is left null
    values[0] = method.getParameterTypes()[0].isInstance(call) ? call : ask(call, "expr");
    values[1] = Boolean.FALSE; // no barrier
    return invoke(method, rows, values);
  }

  /** The function's copy with another result type (the third of its values, however many a release of Spark has). */
  private UserDefinedPythonFunction returning(StructType type) {
    Method copy = method(UserDefinedPythonFunction.class, "copy", "copy");
    Object[] values = new Object[copy.getParameterCount()];
    for (int i = 0; i < values.length; i++) {
      values[i] = i == 2 ? type : ask(function, "copy$default$" + (i + 1));
    }
    return (UserDefinedPythonFunction) invoke(copy, function, values);
  }

  /** What a method without arguments gives. */
  private static Object ask(Object object, String name) {
    return invoke(method(object.getClass(), name, name), object, new Object[0]);
  }

  private static Method method(Class declaring, String name, String olderName) {
    Method[] methods = declaring.getMethods();
    for (int m = 0; m < methods.length; m++) {
      if (methods[m].getName().equals(name) || methods[m].getName().equals(olderName)) {
        return methods[m];
      }
    }
    throw new IllegalStateException(declaring.getName() + " has no method " + name);
  }

  private static Object invoke(Method method, Object object, Object[] values) {
    try {
      return method.invoke(object, values);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    } catch (InvocationTargetException e) {
      throw new IllegalStateException(e.getCause());
    }
  }
}
