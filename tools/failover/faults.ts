import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { listDatabaseProcesses, type Machine } from '../../deploy/ha/cluster.ts'
import { cutOff, fillDisk, reconnect } from './network.ts'
import type { Scene } from './scene.ts'

/** Something that goes wrong. */
export type Fault = {
  name: string
  /** When clients are to be well again: when another machine leads, when the fault is repaired, or at once. */
  endsWith: 'leader' | 'repair' | 'itself'
  /** Makes it, and returns how it is repaired. `leader`: the machine that leads now. */
  cause: (scene: Scene, leader: Machine) => Promise<() => Promise<void> | void>
  /** How long it lasts at least, in seconds. */
  seconds?: number
}

const hostOf = ({ hosts }: Scene, { number }: Machine) => hosts[number - 1]!

/** Ends Patroni and PostgreSQL at once, as when a machine loses its power, and returns how both are started again. */
const kill = (scene: Scene, machine: Machine): (() => void) => {
  for (const pid of [machine.patroni!.pid!, ...listDatabaseProcesses(machine)])
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself.
    }
  return () => scene.cluster.startPatroni(machine)
}

const killLeader: Fault = {
  name: 'kill -9 of the leader',
  endsWith: 'leader',
  cause: (scene, leader) => Promise.resolve(kill(scene, leader)),
}

const cutOffLeader: Fault = {
  name: 'the leader cut off for 30 s',
  endsWith: 'leader',
  seconds: 30,
  cause: (scene, leader) => {
    cutOff(hostOf(scene, leader))
    return Promise.resolve(() => reconnect(hostOf(scene, leader)))
  },
}

const killStandby: Fault = {
  name: 'kill -9 of the synchronous standby',
  endsWith: 'itself',
  seconds: 20,
  cause: async (scene, leader) => {
    const standby = await scene.cluster.findSynchronous()
    if (!standby || standby === leader) throw new Error('there is no synchronous standby')
    return kill(scene, standby)
  },
}

/**
 * PostgreSQL refuses changes that need the disk, and goes on; Patroni sees nothing wrong. Where its log needs the
 * disk, it ends itself, and another machine may lead.
 */
const fillLeader: Fault = {
  name: "the leader's disk full for 20 s",
  endsWith: 'repair',
  seconds: 20,
  cause: (_scene, leader) => {
    const filling = fillDisk(join(leader.folder, 'data'))
    return Promise.resolve(() => rmSync(filling))
  },
}

/** Every fault of a run, in order. */
export const FAULTS: readonly Fault[] = [
  ...Array.from({ length: 5 }, () => killLeader),
  cutOffLeader,
  killStandby,
  fillLeader,
]

/**
 * When it began, when another machine led, when clients are to be well again, and until when they were watched;
 * monotonic clock, in milliseconds.
 */
export type Course = { from: number; leaderAt: number | undefined; wellAt: number; to: number }

const LEADER_WITHIN_MS = 90_000
const LOOK_EVERY_MS = 200
/** How long the clients are watched when they are to be well again. */
const WATCHED_MS = 16_000

const waitForAnother = async ({ cluster }: Scene, leader: Machine): Promise<number> => {
  const others = cluster.machines.filter((machine) => machine !== leader)
  const deadline = performance.now() + LEADER_WITHIN_MS
  while (performance.now() < deadline) {
    if (await cluster.findLeader(others)) return performance.now()
    await pause(LOOK_EVERY_MS)
  }
  throw new Error(`no other machine leads after ${LEADER_WITHIN_MS / 1000} s`)
}

const pauseUntil = (time: number): Promise<void> => pause(Math.max(0, time - performance.now()))

/** Makes a fault, watches what follows, repairs it, and returns when the cluster is complete again. */
export const runFault = async (scene: Scene, fault: Fault): Promise<Course> => {
  const leader = await scene.cluster.waitUntilComplete()
  const from = performance.now()
  const repair = await fault.cause(scene, leader)
  const leaderAt = fault.endsWith === 'leader' ? await waitForAnother(scene, leader) : undefined
  const repairAt = from + 1000 * (fault.seconds ?? 0)
  if (fault.endsWith === 'repair') {
    await pauseUntil(repairAt)
    await repair()
  }
  const wellAt = fault.endsWith === 'repair' ? performance.now() : (leaderAt ?? from)
  await pauseUntil(Math.max(wellAt + WATCHED_MS, repairAt))
  const to = performance.now()
  if (fault.endsWith !== 'repair') await repair()
  await scene.cluster.waitUntilComplete()
  return { from, leaderAt, wellAt, to }
}
