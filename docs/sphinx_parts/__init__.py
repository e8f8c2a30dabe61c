"""Parts of the site that Sphinx, MyST and furo lack."""
