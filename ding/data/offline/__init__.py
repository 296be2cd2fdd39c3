"""Offline data sets: reads transitions from files, checks them and makes columns of them."""
