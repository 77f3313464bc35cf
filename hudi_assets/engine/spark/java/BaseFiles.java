package hudi_assets;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FileSourceConstantMetadataAttribute$;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterable;
import scala.collection.Iterator;
import scala.collection.JavaConverters;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * The base files of a read-optimized query, for Spark's own Parquet reader: the engine has listed them already, and
 * those of partitions that a filter excludes are left out. Partition columns are in the files themselves, so to Spark
 * they are columns like others (no partitionSchema).
 */
public class BaseFiles implements FileIndex {
  private final String text; // what this is made from
  private final Slices slices; // one for each file
  private final FileStatus[] files;

  /** From the JSON of queries/places.py, and one of [path, bytes, time of modification in ms] for each of its slices. */
  public BaseFiles(String places, String listing) throws JsonProcessingException {
    this.text = places + listing;
    this.slices = new Slices(places);
    List listed = (List) new ObjectMapper().readValue(listing, List.class);
    this.files = new FileStatus[listed.size()];
    for (int i = 0; i < files.length; i++) {
      List file = (List) listed.get(i);
      long bytes = ((Number) file.get(1)).longValue(), modified = ((Number) file.get(2)).longValue();
      files[i] = new FileStatus(bytes, false, 1, bytes, modified, path((String) file.get(0)));
    }
  }

  public HadoopFsRelation relation(SparkSession session, String schema) {
    StructType columns = (StructType) DataType.fromJson(schema);
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) Map$.MODULE$.empty();
    return new HadoopFsRelation(
        this, partitionSchema(), columns, Option.empty(), new ParquetFileFormat(), options, session);
  }

  /** Of a local file a name alone, which Spark's plans have with its scheme. */
  private static Path path(String name) {
    Path path = new Path(name);
    return path.isAbsoluteAndSchemeAuthorityNull() ? new Path("file", "", name) : path;
  }

  public Seq rootPaths() {
    Path[] paths = new Path[files.length];
    for (int i = 0; i < paths.length; i++) {
      paths[i] = files[i].getPath();
    }
    return seq(paths);
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    int[] kept = slices.kept(translated(dataFilters));
    FileStatus[] chosen = new FileStatus[kept.length];
    for (int i = 0; i < kept.length; i++) {
      chosen[i] = files[kept[i]];
    }
    return seq(new PartitionDirectory[] {PartitionDirectory.apply(InternalRow.empty(), chosen)});
  }

  public String[] inputFiles() {
    String[] names = new String[files.length];
    for (int i = 0; i < names.length; i++) {
      names[i] = SparkPath.fromFileStatus(files[i]).urlEncoded();
    }
    return names;
  }

  /** A query reads the files that were listed when it was asked. */
  public void refresh() {}

  public long sizeInBytes() {
    return slices.bytes();
  }

  public StructType partitionSchema() {
    return new StructType();
  }

  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  public boolean isTimeTravel() {
    return false;
  }

  /** Two queries of the same files are the same to Spark's cache. */
  public boolean equals(Object other) {
    return other instanceof BaseFiles && ((BaseFiles) other).text.equals(text);
  }

  public int hashCode() {
    return text.hashCode();
  }

  public String toString() {
    return "BaseFiles(" + files.length + ")";
  }

  /** The conditions in the words of Spark's data sources; those that have none there are left out. */
  private static Filter[] translated(Seq conditions) {
    List filters = new ArrayList();
    for (Iterator all = conditions.iterator(); all.hasNext(); ) {
      Expression condition = (Expression) all.next();
      Option filter = DataSourceStrategy$.MODULE$.translateFilter(condition, false);
      if (filter.isDefined() && !asksOfFiles(condition)) {
        filters.add(filter.get());
      }
    }
    return (Filter[]) filters.toArray(new Filter[0]);
  }

  /** True for a condition on `_metadata.file_name` and the like, which has the name of a column here. */
  private static boolean asksOfFiles(Expression condition) {
    for (Iterator all = condition.references().toSeq().iterator(); all.hasNext(); ) {
      if (FileSourceConstantMetadataAttribute$.MODULE$.unapply((AttributeReference) all.next()).isDefined()) {
        return true;
      }
    }
    return false;
  }

  private static Seq seq(Object[] values) {
    return (Seq) ((Iterable) JavaConverters.asScalaBufferConverter(Arrays.asList(values)).asScala()).toSeq();
  }
}
