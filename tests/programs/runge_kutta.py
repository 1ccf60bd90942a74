"""One step after another of a method of Runge and Kutta, written out."""


def spring(x, v, k, dt, n):
    for _ in range(n):
        a = -k * x
        x_half = x + 0.5 * dt * v
        v_half = v + 0.5 * dt * a
        x = x + dt * v_half
        v = v - dt * k * x_half
    return 0.5 * k * x * x + 0.5 * v * v


ARGS = (0.3, -0.7, 1.5, 0.1, 4)

# output: grad(spring, argnums=(0, 1, 2))
def spring_grad(x, v, k, dt, n):
    saved = []
    for _ in range(n):
        a = -k * x
        x_half = x + 0.5 * dt * v
        saved.append((x, x_half))
        v_half = v + 0.5 * dt * a
        x = x + dt * v_half
        v = v - dt * k * x_half
    p = 0.5 * k
    # reverse of: return 0.5 * k * x * x + 0.5 * v * v
    k_bar = x * x * 0.5
    v_bar = 0.5 * v + v * 0.5
    x_bar = p * x + x * p
    for x, x_half in reversed(saved):
        # reverse of: x = x + dt * v_half
        v_half_bar = x_bar * dt
        # reverse of: v = v - dt * k * x_half
        x_half_bar = -(v_bar * (dt * k))
        # reverse of: v_half = v + 0.5 * dt * a
        a_bar = v_half_bar * (0.5 * dt)
        # reverse of: a = -k * x
        k_bar += -(v_bar * x_half * dt) - a_bar * x
        # reverse of: x_half = x + 0.5 * dt * v
        v_bar = v_bar + v_half_bar + x_half_bar * (0.5 * dt)
        # reverse of: a = -k * x
        x_bar = x_bar + x_half_bar + a_bar * -k
    return x_bar, v_bar, k_bar
