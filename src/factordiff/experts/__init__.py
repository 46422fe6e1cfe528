r"""What $p_m(x_0 \mid x_t, condition)$ is: exact tables and trained denoisers."""
