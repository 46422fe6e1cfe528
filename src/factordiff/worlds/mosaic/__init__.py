"""Mosaics: four ARC tasks on one canvas, each known to one of four experts that were trained apart."""
