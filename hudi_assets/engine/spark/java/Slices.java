package hudi_assets;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.StringStartsWith;

/**
 * The file slices of a query: which ones a filter on partition columns leaves out, and which ones a task reads.
 *
 * <p>A condition is true, false, or (null) not known for a partition. Spark applies every filter to the rows again, so
 * only a slice whose condition is false is left out.
 */
public class Slices {
  private static final long MOST_BYTES = 128L << 20; // of a task, as spark.sql.files.maxPartitionBytes
  private static final long OPEN_BYTES = 4L << 20; // what a slice costs at least, as spark.sql.files.openCostInBytes

  private final List columns; // names of the partition columns
  private final List partitions; // of each, a list of the columns' values as text; null where one is not known
  private final boolean joined; // texts were joined with slashes as they are
  private final int[] partition; // of each slice, the number of its partition
  private final long[] bytes; // of each slice

  /** From the JSON of queries/places.py. */
  public Slices(String places) throws JsonProcessingException {
    Map root = (Map) new ObjectMapper().readValue(places, Map.class);
    columns = (List) root.get("columns");
    partitions = (List) root.get("partitions");
    joined = Boolean.TRUE.equals(root.get("joined"));
    List slices = (List) root.get("slices");
    partition = new int[slices.size()];
    bytes = new long[slices.size()];
    for (int i = 0; i < bytes.length; i++) {
      partition[i] = ((Number) ((List) slices.get(i)).get(0)).intValue();
      bytes[i] = ((Number) ((List) slices.get(i)).get(1)).longValue();
    }
  }

  public long bytes() {
    long sum = 0;
    for (int i = 0; i < bytes.length; i++) {
      sum += bytes[i];
    }
    return sum;
  }

  /** For each task the numbers of its slices: as many tasks as run at a time, or a multiple where slices are large. */
  public String[] tasks(Filter[] filters, int parallelism) {
    int[] numbers = kept(filters);
    List kept = new ArrayList();
    long sum = 0;
    for (int i = 0; i < numbers.length; i++) {
      kept.add(Integer.valueOf(numbers[i]));
      sum += cost(Integer.valueOf(numbers[i]));
    }
    long most = MOST_BYTES * parallelism;
    int count = (int) Math.min((long) numbers.length, (sum + most - 1) / most * parallelism);
    Collections.sort(kept, new Comparator() {
      public int compare(Object one, Object other) {
        return Long.compare(cost((Integer) other), cost((Integer) one));
      }
    });
    return shared(kept, count);
  }

  /** The largest slice first, each to the task that has least so far. */
  private String[] shared(List kept, int count) {
    PriorityQueue lightest = new PriorityQueue(Math.max(1, count), new Comparator() {
      public int compare(Object one, Object other) {
        long[] a = (long[]) one, b = (long[]) other;
        return a[0] != b[0] ? Long.compare(a[0], b[0]) : Long.compare(a[1], b[1]);
      }
    });
    for (int i = 0; i < count; i++) {
      lightest.add(new long[] {0, i});
    }
    String[] tasks = new String[count];
    for (int i = 0; i < kept.size(); i++) {
      Integer slice = (Integer) kept.get(i);
      long[] task = (long[]) lightest.poll();
      int number = (int) task[1];
      tasks[number] = tasks[number] == null ? slice.toString() : tasks[number] + "," + slice;
      lightest.add(new long[] {task[0] + cost(slice), task[1]});
    }
    return tasks;
  }

  private long cost(Integer slice) {
    return bytes[slice.intValue()] + OPEN_BYTES;
  }

  /** The numbers of the slices that no filter leaves out. */
  public int[] kept(Filter[] filters) {
    boolean[] may = new boolean[partitions.size()];
    for (int p = 0; p < may.length; p++) {
      may[p] = true;
      for (int f = 0; f < filters.length; f++) {
        may[p] &= !Boolean.FALSE.equals(holds(filters[f], (List) partitions.get(p)));
      }
    }
    int[] kept = new int[bytes.length];
    int count = 0;
    for (int i = 0; i < kept.length; i++) {
      if (may[partition[i]]) {
        kept[count++] = i;
      }
    }
    return Arrays.copyOf(kept, count);
  }

  // -- a filter on the values of one partition; a value that is known is not null

  private Boolean holds(Filter filter, List values) {
    if (filter instanceof And) {
      return both(holds(((And) filter).left(), values), holds(((And) filter).right(), values));
    } else if (filter instanceof Or) {
      return not(both(not(holds(((Or) filter).left(), values)), not(holds(((Or) filter).right(), values))));
    } else if (filter instanceof Not) {
      return not(holds(((Not) filter).child(), values));
    } else if (filter instanceof IsNull) {
      return valueOf(((IsNull) filter).attribute(), values) == null ? null : Boolean.FALSE;
    } else if (filter instanceof IsNotNull) {
      return valueOf(((IsNotNull) filter).attribute(), values) == null ? null : Boolean.TRUE;
    } else if (filter instanceof In) {
      return isOneOf(((In) filter).attribute(), ((In) filter).values(), values);
    } else if (filter instanceof StringStartsWith) {
      return begins(((StringStartsWith) filter).attribute(), ((StringStartsWith) filter).value(), values);
    }
    return compares(filter, values);
  }

  private Boolean begins(String column, String start, List values) {
    String text = valueOf(column, values);
    if (text == null || mayBeginAs(start) || (start.length() > text.length() && mayGoOn(text, start))) {
      return null;
    }
    return joined && text.startsWith(start) ? null : Boolean.valueOf(text.startsWith(start));
  }

  private Boolean compares(Filter filter, List values) {
    Integer order;
    if (filter instanceof EqualTo) {
      order = compare(((EqualTo) filter).attribute(), ((EqualTo) filter).value(), values);
      return order == null ? null : Boolean.valueOf(order.intValue() == 0);
    } else if (filter instanceof EqualNullSafe) {
      order = compare(((EqualNullSafe) filter).attribute(), ((EqualNullSafe) filter).value(), values);
      return order == null ? null : Boolean.valueOf(order.intValue() == 0);
    } else if (filter instanceof GreaterThan) {
      order = ordered(((GreaterThan) filter).attribute(), ((GreaterThan) filter).value(), values);
      return order == null ? null : Boolean.valueOf(order.intValue() > 0);
    } else if (filter instanceof GreaterThanOrEqual) {
      order = ordered(((GreaterThanOrEqual) filter).attribute(), ((GreaterThanOrEqual) filter).value(), values);
      return order == null ? null : Boolean.valueOf(order.intValue() >= 0);
    } else if (filter instanceof LessThan) {
      order = ordered(((LessThan) filter).attribute(), ((LessThan) filter).value(), values);
      return order == null ? null : Boolean.valueOf(order.intValue() < 0);
    } else if (filter instanceof LessThanOrEqual) {
      order = ordered(((LessThanOrEqual) filter).attribute(), ((LessThanOrEqual) filter).value(), values);
      return order == null ? null : Boolean.valueOf(order.intValue() <= 0);
    }
    return null;
  }

  private Boolean isOneOf(String column, Object[] choices, List values) {
    Boolean none = Boolean.TRUE;
    for (int i = 0; i < choices.length; i++) {
      Integer order = compare(column, choices[i], values);
      none = both(none, order == null ? null : Boolean.valueOf(order.intValue() != 0));
    }
    return not(none);
  }

  private static Boolean both(Boolean one, Boolean other) {
    if (Boolean.FALSE.equals(one) || Boolean.FALSE.equals(other)) {
      return Boolean.FALSE;
    }
    return one == null || other == null ? null : Boolean.TRUE;
  }

  private static Boolean not(Boolean one) {
    return one == null ? null : Boolean.valueOf(!one.booleanValue());
  }

  private String valueOf(String column, List values) {
    int place = columns.indexOf(column);
    return place < 0 ? null : (String) values.get(place);
  }

  /** The same where the order matters, not only whether they are equal. */
  private Integer ordered(String column, Object literal, List values) {
    Integer order = compare(column, literal, values);
    if (order == null || !joined || !(literal instanceof String)) {
      return order;
    }
    // Of what begins with a slash or a dot; which the literal does not.
    int other = ((String) literal).isEmpty() || ((String) literal).charAt(0) < '.' ? 1 : -1;
    return Integer.signum(order.intValue()) == other ? order : null;
  }

  /** A partition's value beside a literal, which Spark has given the column's type. */
  private Integer compare(String column, Object literal, List values) {
    String text = valueOf(column, values);
    if (text == null) {
      return null;
    } else if (literal instanceof String && (mayGoOn(text, (String) literal) || mayBeginAs((String) literal))) {
      return null;
    } else if (literal instanceof String) {
      // As Spark does: by UTF-8, which for some characters differs from Java's own order.
      byte[] one = text.getBytes(StandardCharsets.UTF_8);
      return Integer.valueOf(Arrays.compareUnsigned(one, ((String) literal).getBytes(StandardCharsets.UTF_8)));
    } else if (literal instanceof Byte || literal instanceof Short || literal instanceof Integer || literal instanceof Long) {
      return Integer.valueOf(Long.compare(Long.parseLong(text), ((Number) literal).longValue()));
    } else if (literal instanceof Boolean) {
      return Integer.valueOf(Boolean.compare(Boolean.parseBoolean(text), ((Boolean) literal).booleanValue()));
    } else if (literal instanceof java.sql.Date) {
      LocalDate day = ((java.sql.Date) literal).toLocalDate();
      return isUnsure(day) ? null : Integer.valueOf(LocalDate.parse(text).compareTo(day));
    } else if (literal instanceof LocalDate) {
      return Integer.valueOf(LocalDate.parse(text).compareTo((LocalDate) literal));
    }
    return null;
  }

  /** A path loses the slashes that its last value ends with, so a row may have the text and slashes behind it. */
  private static boolean mayGoOn(String text, String literal) {
    return literal.startsWith(text) && (literal.length() == text.length() || literal.charAt(text.length()) <= '/');
  }

  /** Where values were joined, a path has lost the slashes and dots that one begins with. */
  private boolean mayBeginAs(String literal) {
    return joined && (literal.startsWith("/") || literal.startsWith("."));
  }

  /** A java.sql.Date is a midnight of the JVM's zone: a day that the zone left out comes as the next one. */
  private static boolean isUnsure(LocalDate day) {
    boolean isNext = ZoneId.systemDefault().getRules().getValidOffsets(day.minusDays(1).atTime(12, 0)).isEmpty();
    return isNext || day.getYear() < 1583;
  }
}
