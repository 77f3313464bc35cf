"""A Structured Streaming writer of Apache Hudi commits all the time while our sensor compacts its table."""
