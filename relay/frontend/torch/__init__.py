"""The importer of PyTorch programs (`torch.export`), which reads `.pt2` archives without PyTorch."""
