# Written by benchgraph apply. Commit it.
