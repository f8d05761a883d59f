"""Spatial joins by the command ogrjoin, as algorithms of Processing."""


def classFactory(iface):
    from .provider import OgrjoinPlugin

    return OgrjoinPlugin(iface)
