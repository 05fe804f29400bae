"""The importer of Keras 3 models, as `model.save` writes them."""
