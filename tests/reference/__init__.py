"""
The readable solver: docs/concepts/provisioning.md as plain code.

    batch        section 1, 4   which pods, in which order, with which preferences
    overlays     section 8      the catalog after NodeOverlays
    templates    section 2      the templates of NodePools, and their DaemonSets
    ladder       section 4      preferences, dropped one by one
    volumes      section 6      the topology of volumes, attach limits
    topology     section 5      counts, allowed domains
    existing     section 3      existing nodes
    claims       section 3, 7   new nodes
    launches     section 9      the options of launches
    solver       section 3      the order of it all

Consolidation uses the solver to find places for pods:

    consolidation               which nodes to delete or replace to save cost

LAW: no bit sets, no optimizations, nothing from `karpy.core`. The reference is slow and simple; if
it differs from the fast solver, one of the two or the page is wrong.
"""
