"""The examples of the rules and the example kernels, on AWS's own simulator and on ours."""
