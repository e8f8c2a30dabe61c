"""The page of a comparison: one HTML file that needs nothing else.

Charts are drawn by Vega-Lite when the page is written, and are in it as SVG. A chart
library within the page would be 0.8 MB (Vega) or 4.8 MB (Plotly) of script; Vega would
need the right to evaluate text as code, which the page denies itself; and neither
follows a change to dark mode or paper by itself. What the reader does with the charts,
to point at a mark and to bring a system forward, takes a few lines of script.
"""

from keras_attnvariants.experiments.page.rendering import write_page as write_page
