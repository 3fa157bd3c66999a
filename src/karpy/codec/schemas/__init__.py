"""The custom resources as types, and their CustomResourceDefinitions, generated from these."""
