"""Spatial joins by the command ogrjoin, as algorithms of Processing."""


def classFactory(iface):
    from .plugin import OgrjoinPlugin

    return OgrjoinPlugin(iface)
