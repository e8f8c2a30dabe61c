"""The parts of the site that Sphinx, MyST and furo do not have."""
