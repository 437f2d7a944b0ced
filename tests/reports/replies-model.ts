import fc from 'fast-check'

/**
 * What happens in one conversation. `key`: which reply fails, or is read after all; 0: the latest. `after`:
 * seconds since the step before. `by`: index into the list of staff.
 */
export type Step = { after: number } & (
  | { do: 'receive' }
  | { do: 'reply'; by: number }
  | { do: 'fail' | 'read'; key: number }
  | { do: 'close' | 'reopen'; by: number }
  | { do: 'assign'; by: number }
  | { do: 'report' }
)

/** Seconds: mostly those around the targets of the policy, and now and then most of a day. */
const after = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(1, 30, 299, 300, 301, 599, 600, 601, 1800) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 20_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 40_000, max: 100_000 }) },
)
const by = fc.nat(2)
const key = fc.constantFrom(0, 0, 0, 1, 1, 2, 3)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ after, do: fc.constant('receive' as const) }) },
  { weight: 6, arbitrary: fc.record({ after, do: fc.constant('reply' as const), by }) },
  { weight: 5, arbitrary: fc.record({ after, do: fc.constant('fail' as const), key }) },
  { weight: 1, arbitrary: fc.record({ after, do: fc.constant('read' as const), key }) },
  { weight: 3, arbitrary: fc.record({ after, do: fc.constant('close' as const), by }) },
  { weight: 1, arbitrary: fc.record({ after, do: fc.constant('reopen' as const), by }) },
  { weight: 1, arbitrary: fc.record({ after, do: fc.constant('assign' as const), by }) },
  { weight: 1, arbitrary: fc.record({ after, do: fc.constant('report' as const) }) },
)
export const stories = fc.array(fc.array(step, { minLength: 8, maxLength: 22 }), {
  minLength: 1,
  maxLength: 3,
})

/** Targets of the policy in seconds, around the clock. */
export const TARGETS = { first: 600, next: 300, resolution: 7200 }

type ModelWait = {
  since: number
  kind: 'first_response' | 'next_response'
  episode: number
  due: number
  end: number | null
  by: number | null
}
type ModelEpisode = {
  n: number
  openedAt: number
  openedBy: number | null
  closedAt: number | null
  closedBy: number | null
  firstResponse: number | null
  resolutionDue: number
  resumed: boolean
}
/** What is to be seen of a conversation. Times are milliseconds since 1970. */
export type ModelState = {
  open: boolean
  status: 'incoming_no_reply' | 'outgoing_no_response' | null
  waits: ModelWait[]
  episodes: ModelEpisode[]
}

/** What happened, with its time. `resume`: a reply failed after the close, so that the wait goes on. */
export type Fact = { at: number } & (
  | { do: 'receive' }
  | { do: 'reply'; by: number; id: number }
  | { do: 'close' | 'reopen'; by: number }
  | { do: 'resume' }
)

const openEpisode = (state: ModelState, at: number, by: number | null, resumed = false): void => {
  state.open = true
  state.episodes.push({
    n: state.episodes.length + 1,
    openedAt: at,
    openedBy: by,
    closedAt: null,
    closedBy: null,
    firstResponse: null,
    resolutionDue: at + TARGETS.resolution * 1000,
    resumed,
  })
}

const startWait = (state: ModelState, since: number): void => {
  const episode = state.episodes.at(-1)!
  const isFirst = episode.openedBy === null && !episode.resumed && episode.firstResponse === null
  state.waits.push({
    since,
    kind: isFirst ? 'first_response' : 'next_response',
    episode: episode.n,
    due: since + (isFirst ? TARGETS.first : TARGETS.next) * 1000,
    end: null,
    by: null,
  })
}

const endWait = (state: ModelState, at: number, by: number): void => {
  const wait = state.waits.at(-1)
  if (wait?.end === null) Object.assign(wait, { end: at, by })
}

/**
 * Plays the facts from the beginning, leaving out the replies that failed: a failed reply is one that was never
 * written, but for the conversation that it made somebody close.
 */
export const play = (facts: readonly Fact[], failed: ReadonlySet<number>): ModelState => {
  const state: ModelState = { open: false, status: null, waits: [], episodes: [] }
  for (const fact of facts) {
    const { at } = fact
    if (fact.do === 'receive') {
      if (!state.open) openEpisode(state, at, null)
      if (state.waits.at(-1)?.end !== null) startWait(state, at)
      state.status = 'incoming_no_reply'
    } else if (fact.do === 'reply') {
      if (failed.has(fact.id)) continue
      if (state.open) state.episodes.at(-1)!.firstResponse ??= at
      endWait(state, at, fact.by)
      state.status = 'outgoing_no_response'
    } else if (fact.do === 'close') {
      Object.assign(state.episodes.at(-1)!, { closedAt: at, closedBy: fact.by })
      state.open = false
      endWait(state, at, fact.by)
    } else if (fact.do === 'reopen') {
      openEpisode(state, at, fact.by)
      if (state.status === 'incoming_no_reply') startWait(state, at)
    } else {
      const { closedAt } = state.episodes.at(-1)!
      openEpisode(state, at, null, true)
      const wait = state.waits.at(-1)
      // The close did not end the wait after all.
      if (wait && wait.end === closedAt && state.status === 'incoming_no_reply')
        Object.assign(wait, { end: null, by: null, episode: state.episodes.length })
    }
  }
  return state
}

/** Whether a conversation in this state is reopened because the reply written at this time failed. */
export const isResumed = ({ open, status, waits, episodes }: ModelState, writtenAt: number): boolean => {
  const [wait, episode] = [waits.at(-1), episodes.at(-1)]
  return (
    !open &&
    status === 'incoming_no_reply' &&
    wait !== undefined &&
    wait.end === episode?.closedAt &&
    wait.episode === episode.n &&
    writtenAt >= wait.since &&
    writtenAt <= episode.closedAt!
  )
}
