"""Balance a pole by policy gradients with a baseline (Williams, 1992; Sutton et al., NeurIPS 1999).

The environment is CartPole of the package ``gymnasium``: four numbers describe cart and pole, two actions push the
cart. Each step is rewarded with 1 until the pole falls, at most 500 times. ``python examples/cartpole.py --help`` lists
the options.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import candelabra as cd
import gymnasium
from candelabra import nn, optim
from candelabra.distributions import Categorical

if __package__:
    from examples.display import Display
else:
    from display import Display

DISCOUNT = 0.99


class Agent(nn.Module):
    """Map observations (N, 4) to logits of the actions (N, 2) and the expected return (N,)."""

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, 2)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, observations: Any) -> tuple[Any, Any]:
        hidden = self.body(observations)
        return self.actor(hidden), self.critic(hidden).squeeze(-1)


def play(agent: Agent, environment: Any, seed: int | None = None) -> tuple[Any, Any, list[float]]:
    """Play one episode. Return observations (T, 4), actions (T,) and the T rewards."""
    observation, _ = environment.reset(seed=seed)
    observations, actions, rewards = [], [], []
    over = False
    while not over:
        observations.append(cd.from_numpy(observation))
        with cd.no_grad():
            action = Categorical(logits=agent(observations[-1])[0]).sample()
        observation, reward, terminated, truncated, _ = environment.step(int(action))
        actions.append(action)
        rewards.append(float(reward))
        over = terminated or truncated
    return cd.stack(observations), cd.stack(actions), rewards


def returns(rewards: Sequence[float], discount: float = DISCOUNT) -> Any:
    """Return the discounted sums of all rewards from each step on (T,)."""
    sums, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
        sums.append(total)
    return cd.tensor(sums[::-1])


def learn(agent: Agent, optimizer: optim.Optimizer, episode: tuple[Any, Any, list[float]]) -> float:
    """Do one step towards actions that were better than expected. Return the loss."""
    observations, actions, rewards = episode
    expected = returns(rewards) / 50
    logits, values = agent(observations)
    advantages = expected - values.detach()
    policy = Categorical(logits=logits)
    loss = (
        -(policy.log_prob(actions) * advantages).mean()
        + nn.functional.mse_loss(values, expected)
        - 0.01 * policy.entropy().mean()
    )
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    return loss.item()


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn from episodes and print the mean reward of the last ones. Return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=300, help="episodes to learn from (default 300)")
    parser.add_argument("--curve", type=Path, default=Path("cartpole.svg"), help="the file of the curve of rewards")
    options = parser.parse_args(arguments)
    cd.manual_seed(0)
    environment = gymnasium.make("CartPole-v1")
    agent = Agent()
    optimizer = optim.Adam(agent.parameters(), lr=5e-3)
    with Display("cart and pole", options.episodes, "reward") as display:
        for number in range(options.episodes):
            episode = play(agent, environment, seed=0 if number == 0 else None)
            learn(agent, optimizer, episode)
            display.add(sum(episode[2]))
    display.save(options.curve)
    last = display.values[-20:]
    print(f"the pole stood for {sum(last) / len(last):.0f} steps on average in the last {len(last)} episodes")
    print(f"The curve of rewards is in {options.curve}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
