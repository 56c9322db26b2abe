"""Trees whose merge is a product."""

from lengthwise.experiment import EXPERIMENTS


def test_products_have_one_recipe_for_all_tasks() -> None:
    specs = EXPERIMENTS["regular-gpt/ours"]("small").select(columns="products").specs
    assert len({(spec.recipe, spec.model_config, spec.goal) for spec in specs}) == 1
