// An address that leads nowhere, said plainly, with ways out.
import { Link } from "../router.tsx";

export function Nowhere({ what }: { what: string }) {
  return (
    <div class="empty nowhere">
      <h1>{what}</h1>
      <p>
        <Link href="/">Last session</Link> · <Link href="/new">New session</Link>
      </p>
    </div>
  );
}
