"""When to compact: the policy, its simulator, and the exhaustive optimum beside it."""
