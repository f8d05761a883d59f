"""What QGIS loads."""

from qgis.core import QgsApplication

from .provider import OgrjoinProvider


class OgrjoinPlugin:
    """Holds the provider. iface is None in qgis_process, which calls
    initProcessing(); QGIS itself calls initGui()."""

    def __init__(self, iface):
        self.iface = iface
        self.provider = None

    def initProcessing(self):
        self.provider = OgrjoinProvider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self):
        self.initProcessing()

    def unload(self):
        if self.provider is not None:
            QgsApplication.processingRegistry().removeProvider(self.provider)
            self.provider = None
