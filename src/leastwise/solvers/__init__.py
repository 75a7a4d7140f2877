r"""Solvers of the ridge problem, with held-out scores in closed form: exact cross-validation without refits.

The ridge problem, with residual r = z - Phi theta and intercept column v, is the symmetric system

    [ I     Phi   v ] [ r     ]   [ z ]
    [ Phi' -rho   0 ] [ theta ] = [ 0 ]                                                        (H)
    [ v'    0     0 ] [ b     ]   [ 0 ]

Leaving out the rows f, together with the basis functions o that those rows own, deletes the unknowns r_f and
theta_o with their equations. Let B be the inverse of (H) and E the deleted indices. Then the held-out scores are

    f_f = z_f - [ (B_EE)^-1 (B [z; 0; 0])_E ]_f,

exact, for one row or many. Without the intercept, and with Phi = U diag(s) V', the blocks of the inverse are

    P = I - U diag(s^2 e) U',   T = U diag(s e) V',   D = -V diag(e) V',   e = 1 / (s^2 + rho);

the intercept subtracts a rank-one term. For one row this is a 2 x 2 system, and the leave-one-out scores of a whole
regularisation path cost a few matrix products. If the penalty is on the function and every row is a basis function,
deleting the row deletes its basis function too, so that E = f is enough.

The ridge is rho = alpha * (weight of the training rows), as in a refit; with unequal weights it differs from fold to
fold.
"""
