"""From a workload to a plan: which nodes are kept, which comes from which, where each is made. No Spark here."""
