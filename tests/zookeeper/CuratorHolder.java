package hudi_assets.tests;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * A lock of Curator's, as Hudi takes one, that does what it is told, a line each: {@code take MILLISECONDS}, {@code free},
 * {@code count FILE TIMES} (adds one to the number in a file that often, each time under the lock).
 *
 * <p>Takes the connect string, the lock's path and the session's milliseconds.
 */
public final class CuratorHolder {
  private CuratorHolder() {}

  public static void main(String[] args) throws Exception {
    int sessionMs = Integer.parseInt(args[2]);
    CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], sessionMs, 15000, new RetryOneTime(500));
    client.start();
    client.blockUntilConnected();
    InterProcessMutex mutex = new InterProcessMutex(client, args[1]);
    System.out.println("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    String line = lines.readLine();
    while (line != null) {
      String[] words = line.split(" ");
      if (words[0].equals("take")) {
        System.out.println(mutex.acquire(Long.parseLong(words[1]), TimeUnit.MILLISECONDS) ? "taken" : "held by another");
      } else if (words[0].equals("free")) {
        mutex.release();
        System.out.println("free");
      } else {
        count(mutex, Paths.get(words[1]), Integer.parseInt(words[2]));
        System.out.println("counted");
      }
      line = lines.readLine();
    }
    client.close();
  }

  private static void count(InterProcessMutex mutex, Path file, int times) throws Exception {
    for (int i = 0; i < times; i++) {
      mutex.acquire();
      try {
        int seen = Integer.parseInt(new String(Files.readAllBytes(file)).trim());
        Thread.sleep(2);
        Files.write(file, Integer.toString(seen + 1).getBytes());
      } finally {
        mutex.release();
      }
    }
  }
}
