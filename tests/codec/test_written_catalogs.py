from karpy.adapters.clouds.aws.builtin import builtin_region
from karpy.codec.catalogs import read_catalog, write_catalog
from karpy.core.aws.catalog import CatalogMaker
from karpy.model.ec2 import InstanceSettings


def test_a_written_catalog_reads_the_same() -> None:
    made = CatalogMaker().make(builtin_region("eu-west-1"), {}, usual=InstanceSettings())

    read = read_catalog(write_catalog(made))

    assert read.well_known == made.well_known
    assert [each.name for each in read.types] == [each.name for each in made.types]
    for mine, its in zip(made.types, read.types, strict=True):
        assert its.requirements == mine.requirements, mine.name
        assert (its.capacity, its.allocatable) == (mine.capacity, mine.allocatable), mine.name
        assert [each.price for each in its.offerings] == [each.price for each in mine.offerings]
        assert [(each.zone, each.capacity_type) for each in its.offerings] == [
            (each.zone, each.capacity_type) for each in mine.offerings
        ]
