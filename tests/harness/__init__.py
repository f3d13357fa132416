"""Random schemas, data and queries, and a strict comparer: what the differential tests are made of."""
