/** Returns the types of events, in their order. */
export const types = (events: { type: string }[]): string[] => events.map((e) => e.type)

export const countOf = <T>(list: readonly T[], one: T): number => list.filter((item) => item === one).length
