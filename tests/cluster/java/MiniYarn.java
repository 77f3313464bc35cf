import java.io.FileOutputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A real YARN on the loopback, in the working folder: two node managers. It ends when its standard input does. */
public class MiniYarn {
  public static void main(String[] arguments) throws Exception {
    YarnConfiguration settings = new YarnConfiguration();
    settings.set("fs.defaultFS", "file:///");
    settings.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
    settings.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
    settings.setInt("yarn.scheduler.minimum-allocation-mb", 128);
    settings.setInt("yarn.minicluster.yarn.nodemanager.resource.memory-mb", 2048);
    settings.setFloat("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", 100f);
    // The usual one wants a file with its queues.
    String schedulers = "org.apache.hadoop.yarn.server.resourcemanager.scheduler";
    settings.set("yarn.resourcemanager.scheduler.class", schedulers + ".fifo.FifoScheduler");
    MiniYARNCluster cluster = new MiniYARNCluster("yarn", 2, 1, 1);
    cluster.init(settings);
    cluster.start();
    cluster.waitForNodeManagersToConnect(60_000);
    try (OutputStream out = new FileOutputStream(Path.of(arguments[0], "yarn-site.xml").toFile())) {
      cluster.getConfig().writeXml(out);
    }
    System.out.println("UP");
    System.out.flush();
    while (System.in.read() >= 0) {
    }
    cluster.stop();
    System.exit(0);
  }
}
