"""What worker processes do: each function calls public verbs and returns plain data for a page.

`work(stage, **given)`: `stage` tells how far it is. What is returned travels as JSON; what is large (a release, a page
of a report) is written into the folder of the session, which is given.
"""
