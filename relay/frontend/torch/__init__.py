"""The importer of PyTorch programs (`torch.export`). Reads `.pt2` archives without PyTorch."""
