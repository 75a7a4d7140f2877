"""The choice of hyper-parameters by held-out scores.

A hyper-parameter is a number (used as it is), a sequence (a grid) or "auto" (a grid made for the data, which grows
while the best value lies on its border). ``grid`` holds grids and the two ways to go through one, ``trial`` gets
held-out scores for one basis on some rows, ``search`` puts them together.
"""
