import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A real HDFS on the loopback, in a folder: a name node and two data nodes. It ends when its standard input does. */
public class MiniHdfs {
  public static void main(String[] arguments) throws Exception {
    Configuration settings = new Configuration();
    settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[0]);
    settings.setBoolean("dfs.permissions.enabled", true);
    settings.setInt("dfs.replication", 2);
    // A file may be closed before a data node has told of its last block: without it every third takes half a second.
    settings.setInt("dfs.namenode.file.close.num-committed-allowed", 1);
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings).numDataNodes(2).build();
    cluster.waitActive();
    cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0777));
    System.out.println("UP " + cluster.getFileSystem().getUri());
    System.out.flush();
    while (System.in.read() >= 0) {
    }
    cluster.shutdown(true);
    System.exit(0);
  }
}
