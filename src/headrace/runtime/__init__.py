"""Where plans and queries run: the Spark session, the reference runtime and the results."""
