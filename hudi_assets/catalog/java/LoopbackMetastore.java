package hudi_assets;

import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.TUGIBasedProcessor;
import org.apache.hadoop.hive.thrift.TUGIContainingTransport;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.server.ServerContext;
import org.apache.thrift.server.TServer;
import org.apache.thrift.server.TServerEventHandler;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransport;

/**
 * Hive's metastore on 127.0.0.1 alone: its own main class listens on all addresses, and asks nobody who he is.
 *
 * <p>Takes the port. Without TLS and Kerberos, it does what {@code HiveMetaStore.startMetaStore} does.
 */
public class LoopbackMetastore implements TServerEventHandler {
  private final IHMSHandler handler;

  private LoopbackMetastore(IHMSHandler handler) {
    this.handler = handler;
  }

  public static void main(String[] args) throws Exception {
    HiveConf conf = new HiveConf(HiveMetaStore.class);
    IHMSHandler plain = new HiveMetaStore.HMSHandler("new db based metaserver", conf, false);
    IHMSHandler handler = HiveMetaStore.newRetryingHMSHandler(plain, conf);
    TServerSocket socket = new TServerSocket(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    TThreadPoolServer.Args settings = new TThreadPoolServer.Args(socket);
    settings.processor(new TUGIBasedProcessor(handler));
    settings.transportFactory(new TUGIContainingTransport.Factory());
    settings.protocolFactory(new TBinaryProtocol.Factory());
    settings.maxWorkerThreads(1000);
    TServer server = new TThreadPoolServer(settings);
    server.setServerEventHandler(new LoopbackMetastore(plain));
    server.serve();
  }

  public void preServe() {}

  public ServerContext createContext(TProtocol input, TProtocol output) {
    return null;
  }

  /** A connection has ended: its thread gives its database connection back. */
  public void deleteContext(ServerContext context, TProtocol input, TProtocol output) {
    try {
      this.handler.shutdown();
    } catch (Exception problem) {
      System.err.println("after a connection: " + problem);
    }
  }

  public void processContext(ServerContext context, TTransport input, TTransport output) {}
}
