import numpy as np
from softmax import softmax

softmax(np.zeros((256, 4), np.float32))
