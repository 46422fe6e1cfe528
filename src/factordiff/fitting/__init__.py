"""Numbers and routers fitted on held-out data, and a diagnosis of whether they are needed. The experts stay frozen."""
