import { type StatementMessage, statementChannel } from '../storage/client/statement-channel.ts'

/** Returns the texts of the statements that `work` sends and for which `isMeant` is true. */
export const recordTexts = async (
  work: () => Promise<unknown>,
  isMeant: (text: string) => boolean = () => true,
): Promise<string[]> => {
  const texts: string[] = []
  const listener = {
    start: ({ text }: StatementMessage): void => {
      if (isMeant(text)) texts.push(text)
    },
  }
  statementChannel.subscribe(listener as never)
  try {
    await work()
  } finally {
    statementChannel.unsubscribe(listener as never)
  }
  return texts
}
