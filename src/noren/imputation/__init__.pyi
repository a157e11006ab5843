from noren.imputation.pooling import Pooled as Pooled
from noren.imputation.pooling import pool as pool
from noren.imputation.tables import Imputations as Imputations
