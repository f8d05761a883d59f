"""The plugin that QGIS loads, and its provider of algorithms with one setting."""

from qgis.core import QgsApplication, QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from .algorithm_base import icon_path
from .algorithms import ALGORITHMS
from .command import SETTING

try:  # missing if the plugin "processing" is off, which qgis_process allows
    from processing.core.ProcessingConfig import ProcessingConfig, Setting
except ImportError:
    ProcessingConfig = None


class OgrjoinProvider(QgsProcessingProvider):
    def id(self):
        return "ogrjoin"

    def name(self):
        return "ogrjoin"

    def longName(self):
        return "ogrjoin (spatial joins)"

    def icon(self):
        return QIcon(icon_path("ogrjoin"))

    def svgIconPath(self):
        return icon_path("ogrjoin")

    def supportsNonFileBasedOutput(self):
        return False

    def load(self):
        if ProcessingConfig is not None:
            ProcessingConfig.settingIcons[self.name()] = self.icon()
            ProcessingConfig.addSetting(
                Setting(
                    self.name(),
                    SETTING,
                    "The command ogrjoin (empty: the one in the PATH)",
                    "",
                    valuetype=Setting.FILE,
                )
            )
            ProcessingConfig.readSettings()
        self.refreshAlgorithms()
        return True

    def unload(self):
        if ProcessingConfig is not None:
            ProcessingConfig.removeSetting(SETTING)

    def loadAlgorithms(self):
        for algorithm in ALGORITHMS:
            self.addAlgorithm(algorithm())


class OgrjoinPlugin:
    """The plugin: registers the provider. In qgis_process iface is None and
    initProcessing() is called; QGIS itself calls initGui()."""

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
