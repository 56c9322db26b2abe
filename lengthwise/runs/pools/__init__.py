"""Sweeps of runs on pools: processes of this machine, machines that share a folder, Dask, Ray, or any executor."""
