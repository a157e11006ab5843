"""Noren Studio: Noren in a browser, on the holder's own machine.

A thin edge like the command line: every action is a public verb, every form is made from the fields of models and
methods. `gate` lets in one browser per one-time address, `session` keeps its edits, `jobs` runs verbs in processes of
their own, `pages` shows them. Nothing here judges a policy or a table by itself.
"""
