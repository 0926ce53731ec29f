"""Keys and values as columns with types: what serializers made of objects, by the schemas that they used."""
