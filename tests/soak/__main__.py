from tests.soak.command import main

if __name__ == "__main__":
    main()
