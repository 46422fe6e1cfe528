"""Training an expert: optimizers, checkpoints, the trainer. It takes batches from whoever has them."""
