package org.apache.hudi.aws.transaction.lock;

import com.amazonaws.auth.EnvironmentVariableCredentialsProvider;
import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.services.s3.AmazonS3;
import com.amazonaws.services.s3.AmazonS3ClientBuilder;
import com.amazonaws.services.s3.model.AmazonS3Exception;
import com.amazonaws.services.s3.model.ObjectMetadata;
import com.amazonaws.services.s3.model.PutObjectRequest;
import com.amazonaws.services.s3.model.S3Object;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.Properties;
import org.apache.hudi.client.transaction.lock.StorageLockClient;
import org.apache.hudi.client.transaction.lock.models.LockGetResult;
import org.apache.hudi.client.transaction.lock.models.LockUpsertResult;
import org.apache.hudi.client.transaction.lock.models.StorageLockData;
import org.apache.hudi.client.transaction.lock.models.StorageLockFile;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.Pair;

/**
 * Stands where hudi-aws has the client that Hudi's own StorageBasedLockProvider loads by this name: hudi-aws can be had
 * from no registry. All that decides (who may take the lock, when, for how long) is Hudi's; here are two requests.
 */
public class S3StorageLockClient implements StorageLockClient {
  private static final int REFUSED = 412;
  private static final int MISSING = 404;
  private final AmazonS3 s3;
  private final String bucket;
  private final String key;

  public S3StorageLockClient(String owner, String uri, Properties properties) {
    Pair<String, String> place = StorageLockClient.parseBucketAndPath(uri);
    bucket = place.getLeft();
    key = place.getRight();
    s3 = AmazonS3ClientBuilder.standard()
        .withEndpointConfiguration(new EndpointConfiguration(System.getenv("AWS_ENDPOINT_URL"), System.getenv("AWS_REGION")))
        .withCredentials(new EnvironmentVariableCredentialsProvider())
        .withPathStyleAccessEnabled(true)
        .build();
  }

  @Override
  public Pair<LockUpsertResult, Option<StorageLockFile>> tryUpsertLockFile(
      StorageLockData data, Option<StorageLockFile> previous) {
    byte[] body = StorageLockFile.toByteArray(data);
    ObjectMetadata length = new ObjectMetadata();
    length.setContentLength(body.length);
    PutObjectRequest put = new PutObjectRequest(bucket, key, new ByteArrayInputStream(body), length);
    if (previous.isPresent()) {
      put.putCustomRequestHeader("If-Match", previous.get().getVersionId());
    } else {
      put.putCustomRequestHeader("If-None-Match", "*");
    }
    try {
      return Pair.of(LockUpsertResult.SUCCESS, Option.of(new StorageLockFile(data, s3.putObject(put).getETag())));
    } catch (AmazonS3Exception error) {
      boolean others = error.getStatusCode() == REFUSED;
      return Pair.of(others ? LockUpsertResult.ACQUIRED_BY_OTHERS : LockUpsertResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Pair<LockGetResult, Option<StorageLockFile>> readCurrentLockFile() {
    try (S3Object found = s3.getObject(bucket, key)) {
      String version = found.getObjectMetadata().getETag();
      return Pair.of(
          LockGetResult.SUCCESS, Option.of(StorageLockFile.createFromStream(found.getObjectContent(), version)));
    } catch (AmazonS3Exception error) {
      boolean missing = error.getStatusCode() == MISSING;
      return Pair.of(missing ? LockGetResult.NOT_EXISTS : LockGetResult.UNKNOWN_ERROR, Option.empty());
    } catch (IOException error) {
      return Pair.of(LockGetResult.UNKNOWN_ERROR, Option.empty());
    }
  }

  @Override
  public Option<String> readObject(String path, boolean check) {
    return Option.empty();
  }

  @Override
  public boolean writeObject(String path, String content) {
    return false;
  }

  @Override
  public void close() {
    s3.shutdown();
  }
}
