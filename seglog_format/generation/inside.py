"""Names of this package for proofs: directories made from recipes, with the records that Kafka has to find.

``seglog generate`` makes the same directories.
"""

from __future__ import annotations

from seglog_format.generation.generate import GeneratedPartition, generate
from seglog_format.generation.plan import PartitionPlan, PlannedAppend
from seglog_format.generation.recipe import random_recipe
from seglog_format.generation.recipe_model import StepRecipe

__all__ = ["GeneratedPartition", "PartitionPlan", "PlannedAppend", "StepRecipe", "generate", "random_recipe"]
