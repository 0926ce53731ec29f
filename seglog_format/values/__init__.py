"""Keys and values as typed columns, decoded by the schemas that their serializers used."""
