"""
The readable solver: docs/concepts/provisioning.md as plain code.

    batch        section 1, 4   which pods, in which order, with which wishes
    overlays     section 8      what the catalog says after corrections
    templates    section 2      what each NodePool can make, and its daemons
    ladder       section 4      preferences, dropped one by one
    volumes      section 6      where volumes are, how many can be attached
    topology     section 5      counts, allowed domains
    existing     section 3      nodes that are there
    claims       section 3, 7   nodes to be made
    launches     section 9      what to ask the cloud for
    solver       section 3      the order of it all

The solver is also what consolidation asks where pods would go:

    consolidation               which nodes go for the sake of cost, and what replaces them

LAW: no bit sets, no clever order, nothing from `karpy.core`. It is slow and right; where it and the
fast solver differ, one of the two or the page is wrong.
"""
