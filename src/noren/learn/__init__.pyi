from noren.learn.models import CrossValidation as CrossValidation
from noren.learn.models import ReleaseClassifier as ReleaseClassifier
from noren.learn.models import ReleaseRegressor as ReleaseRegressor
