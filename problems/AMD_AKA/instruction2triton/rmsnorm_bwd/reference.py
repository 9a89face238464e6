import torch


def run(x, g, grad_output):
    # Gradients of y = g * x / r with r = sqrt(mean over n of x^2), no eps; fp32 inside, one rounding an output.
    x, g, grad_output = x.float(), g.float(), grad_output.float()
    inverse = torch.rsqrt(x.square().mean(dim=1, keepdim=True))
    normed = x * inverse
    upstream = grad_output * g
    projection = (upstream * normed).mean(dim=1, keepdim=True)
    grad_x = (upstream - normed * projection) * inverse
    grad_g = (grad_output * normed).sum(dim=0, keepdim=True)
    return grad_x.half(), grad_g.half()
